"""What knows nothing of dialogues: errors, whole-or-absent files, schemas, hashes and seeds, templates, tables, words, workers."""
