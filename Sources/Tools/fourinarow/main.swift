import Glibc
import ProgramSupport

StandardStreams.begin(for: "fourinarow")
// Help and mistakes in the arguments end the program here, before it takes any threads.
let command = FourInARowProgram.parse(ProgramArguments.readOrExit(for: "fourinarow"))
// Before any other thread exists, so that no other thread receives a signal.
TerminationSignals.block()
if let shortage = SystemRequirements.shortage { exit(FourInARowProgram.reportShortage(shortage)) }
Task.detached { exit(await FourInARowProgram.run(command)) }
TerminationSignals.wait()
