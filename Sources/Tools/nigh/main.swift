import Glibc
import ProgramSupport

StandardStreams.begin(for: "nigh")
let arguments = ProgramArguments.readOrExit(for: "nigh")
if let help = HelpRequest(arguments) { exit(help.run()) }
// Help and mistakes in the arguments end the program here, before it takes any threads.
let command = NighProgram.parse(arguments)
// Block the signals before any other thread exists, so that no other thread receives one.
TerminationSignals.block()
if let shortage = SystemRequirements.shortage { exit(NighProgram.reportShortage(shortage, command)) }
Task.detached { exit(await NighProgram.run(command)) }
TerminationSignals.wait()
