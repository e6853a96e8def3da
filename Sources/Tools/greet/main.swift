await Greeting.run()
