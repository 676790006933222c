"""Other ways to plan, to compare with: fixed rules, published planners re-made from their papers, plain search.

Each takes the same building blocks and, where it simulates, the same simulator. What a paper leaves open is read in the
natural way and said in its module.
"""
