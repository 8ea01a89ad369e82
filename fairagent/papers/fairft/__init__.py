"""FairFT, which fine-tunes a retriever by a frozen language model, and the experiments of FairFT and FairFilter."""
