"""What models prefer: StereoSet and CrowS-Pairs after what each system retrieves, SEAT on the vectors of encoders."""

KINDS = {
    "stereoset": "fairagent.evaluate.kinds.stereotypes.stereoset:StereoSet",
    "crows-pairs": "fairagent.evaluate.kinds.stereotypes.crows_pairs:CrowsPairs",
    "seat": "fairagent.evaluate.kinds.stereotypes.seat:Seat",
}
