import ProgramSupport

StandardStreams.begin(for: "fourinarow-solver")
SolverProgram.main(Array(CommandLine.arguments.dropFirst()))
