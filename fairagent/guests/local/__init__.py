"""Models on this machine (extra `local`): transformers models that reply and score texts, and GGUF files served."""
