"""Version matrices as they are read: several A/B runs against one baseline, as one table of ratios."""
