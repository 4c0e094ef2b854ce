"""Ratings of augmented sentences by several people: a page to rate them blindly, and what the ratings say."""
