"""What each page says: pure functions from the latest results to frozen records that the templates show."""
