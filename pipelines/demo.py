"""What `ragplane demo` asks the sample corpus."""

CORPUS = "demo"
QUESTIONS = (
    "What does a thorium lamp cost in 2031?",
    "How long should the South Dome's shutter take to open?",
    "What did Quarrat Cryogenics find when they opened the cold head?",
    "Who keeps the keys on the ridge?",
)
