"""Which rules are in force, and what do they say?"""
