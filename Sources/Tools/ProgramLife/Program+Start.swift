import Arguments
import Glibc

extension Program {
    /// What `arguments` ask the program to do. Where they ask for help, or for what there is not, it is told so and ends.
    public func parseOrExit(_ arguments: [String], as name: String, width: Int = 80) -> Action {
        do throws(Misuse) {
            switch try parse(arguments, width: width) {
            case .action(let action): return action
            case .text(let text):
                LineOutput.write(text, to: STDOUT_FILENO)
                exit(0)
            }
        } catch {
            LineOutput.complain("\(error)", by: name)
            exit(Misuse.status)
        }
    }
}
