"""What each page says: small pure functions from the board to frozen records that the templates show."""
