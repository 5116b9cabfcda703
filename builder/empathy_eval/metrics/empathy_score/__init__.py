"""EmpathyScore: a metric trained from a release that rates how empathetic a reply is; model folders, model kinds, metrics."""
