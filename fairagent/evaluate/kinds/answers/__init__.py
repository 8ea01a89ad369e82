"""Systems answer questions, and the answers are graded: do they agree with stereotypes, and are they right?"""

KINDS = {
    "agreement": "fairagent.evaluate.kinds.answers.agreement:Agreement",
    "accuracy": "fairagent.evaluate.kinds.answers.accuracy:Accuracy",
}
