import Arguments
import NighLoop
import NighMemory

/// A command that can be typed while `nigh inject` runs.
enum RelayCommand: Equatable, Sendable {
    case cut(Int?)
    case stall(FaultPlan.Direction, Int?)
    case release(Int?)
    case block(FaultPlan.Direction, FaultControl.BlockedDials)
    case unblock
    case faults(FaultPlan?)
    case status
    case help
    case quit

    /// Parses a line; returns nil for an empty one.
    static func parse(_ line: String) throws(UsageError) -> RelayCommand? {
        var words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard !words.isEmpty else { return nil }
        let name = words.removeFirst()
        if name == "faults" {
            guard let text = words.first else { return .faults(nil) }
            guard words.count == 1 else {
                throw UsageError("faults are written without spaces, as in delay=1s,cut=5%")
            }
            do throws(NighError) {
                return .faults(text == "none" ? FaultPlan.none : try FaultPlan(parsing: text))
            } catch {
                throw UsageError("\(error)")
            }
        }
        var direction: FaultPlan.Direction?
        var number: Int?
        var dials: FaultControl.BlockedDials?
        for word in words {
            if let parsed = FaultPlan.Direction(rawValue: word), direction == nil {
                direction = parsed
            } else if let wanted = Int(word), wanted > 0, number == nil {
                number = wanted
            } else if word == "refuse", dials == nil {
                dials = .refuse
            } else {
                throw UsageError("\"\(word)\" is not understood after \(name); type help for the commands")
            }
        }
        let command: RelayCommand
        switch name {
        case "cut": command = .cut(number)
        case "stall": command = .stall(direction ?? .both, number)
        case "release": command = .release(number)
        case "block": command = .block(direction ?? .both, dials ?? .timeOut)
        case "unblock": command = .unblock
        case "status": command = .status
        case "help", "?": command = .help
        case "quit", "exit": command = .quit
        default: throw UsageError("\"\(name)\" is not a command; type help for the commands")
        }
        let takesNumber = ["cut", "stall", "release"].contains(name)
        let takesDirection = ["stall", "block"].contains(name)
        guard number == nil || takesNumber, direction == nil || takesDirection,
            dials == nil || name == "block"
        else { throw UsageError("\(name) does not take that argument; type help for the commands") }
        return command
    }

    static let guide = [
        ("cut [N]", "breaks connection N, or all"),
        ("stall [out|in] [N]", "holds bytes to the target (out), from it (in), or both"),
        ("release [N]", "sends the held bytes on"),
        ("block [out|in] [refuse]", "drops bytes; new connections hang or are refused"),
        ("unblock", "ends a block; connections that lost bytes stay silent"),
        ("faults [FAULTS|none]", "shows or changes FAULTS, also for open connections"),
        ("status", "lists the connections, and what has passed"),
        ("help", "lists these commands"),
        ("quit", "ends the relay, as Ctrl-C does"),
    ]
}
