"""StereoSet and CrowS-Pairs as experiments: what retrieval and filters do to what a model prefers."""
