"""The policy: rules, what they match, what is built in, and the verdict on an action. Pure, but for the loader."""
