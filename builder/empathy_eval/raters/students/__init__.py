"""Students: models of EmpathyScore that are trained from the pairs of a release, and how far they are right."""
