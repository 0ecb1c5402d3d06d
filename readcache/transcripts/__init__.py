"""Readers of transcripts: one file for each format turns a transcript into `records`."""
