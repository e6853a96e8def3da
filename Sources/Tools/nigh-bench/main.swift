await Benchmark.run(CommandLine.arguments)
