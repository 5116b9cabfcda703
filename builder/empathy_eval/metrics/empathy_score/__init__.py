"""EmpathyScore: how empathetic a reply is, as a model says that was trained from a release; the model's folder, its kinds, the metrics."""
