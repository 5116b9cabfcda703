"""The Hub: publishing and fetching."""
