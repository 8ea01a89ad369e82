"""Stereotypes in models: what they prefer (StereoSet, CrowS-Pairs), write (BOLD) and associate (SEAT)."""

KINDS = {
    "stereoset": "fairagent.evaluate.kinds.stereotypes.stereoset:StereoSet",
    "crows-pairs": "fairagent.evaluate.kinds.stereotypes.crows_pairs:CrowsPairs",
    "bold": "fairagent.evaluate.kinds.stereotypes.bold:Bold",
    "seat": "fairagent.evaluate.kinds.stereotypes.seat:Seat",
}
