"""The uniformity experiment (security cases, section 2.12): can a stranger with a clock tell two kinds of request apart?"""
