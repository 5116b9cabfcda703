"""From a plan to its outcome, and all plans of a build in order: self-chat, rewriting, checks, and the ways to run it."""
