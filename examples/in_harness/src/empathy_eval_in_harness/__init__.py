"""Which of two replies does a model choose? Tasks for inspect_ai and lm-evaluation-harness, each question in both orders."""
