"""Models on this machine: transformers models that score texts, and a GGUF file served (extra `local`)."""
