"""What happened, provably?"""
