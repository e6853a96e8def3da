Soak.main(Array(CommandLine.arguments.dropFirst()))
