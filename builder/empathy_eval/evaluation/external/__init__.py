"""Scores and texts from elsewhere: files of scores, annotations, custom texts."""
