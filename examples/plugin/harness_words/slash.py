"""The slash command `/words`."""


def run(conversation, text):
    answer = conversation.session.messages[-1].content if conversation.session.messages else ""
    conversation.say(f"{len(answer.split())} words")
