text, labels = args
labels = [label.strip() for label in labels.split(",") if label.strip()]
out(ai_classify(text, labels))
