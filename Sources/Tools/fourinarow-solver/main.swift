SolverProgram.main(Array(CommandLine.arguments.dropFirst()))
