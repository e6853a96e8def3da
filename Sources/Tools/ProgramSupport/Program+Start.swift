import Arguments
import Glibc

extension Program {
    /// Returns the action that `arguments` ask for. If they ask for help or contain a mistake, prints that and ends the
    /// program.
    ///
    /// - Parameter defaults: The values of options that the arguments do not give.
    public func parseOrExit(
        _ arguments: [String], defaults: [OptionDefault] = [], as name: String, width: Int = 80
    ) -> Action {
        do throws(UsageError) {
            switch try parse(arguments, defaults: defaults, width: width) {
            case .action(let action): return action
            case .text(let text):
                LineOutput.write(text, to: STDOUT_FILENO)
                exit(0)
            }
        } catch {
            LineOutput.printError("\(error)", by: name)
            exit(UsageError.status)
        }
    }
}
