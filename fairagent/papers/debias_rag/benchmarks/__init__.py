"""Stereotypes in models: what they prefer (StereoSet, CrowS-Pairs), write (BOLD) and associate (SEAT)."""
