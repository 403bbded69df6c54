"""Has this been used?"""
