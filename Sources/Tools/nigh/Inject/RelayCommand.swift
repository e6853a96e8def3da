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
    static func parse(_ line: String) throws(Misuse) -> RelayCommand? {
        var words = line.split(whereSeparator: \.isWhitespace).map(String.init)
        guard !words.isEmpty else { return nil }
        let name = words.removeFirst()
        if name == "faults" {
            guard let text = words.first else { return .faults(nil) }
            guard words.count == 1 else {
                throw Misuse("faults are written in one word, as in delay=1s,cut=5%")
            }
            do throws(NighError) {
                return .faults(text == "none" ? FaultPlan.none : try FaultPlan(parsing: text))
            } catch {
                throw Misuse("\(error)")
            }
        }
        var direction: FaultPlan.Direction?
        var number: Int?
        var dials: FaultControl.BlockedDials?
        for word in words {
            if let way = FaultPlan.Direction(rawValue: word), direction == nil {
                direction = way
            } else if let wanted = Int(word), wanted > 0, number == nil {
                number = wanted
            } else if word == "refuse", dials == nil {
                dials = .refuse
            } else {
                throw Misuse("\"\(word)\" is not understood behind \(name); help tells what is")
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
        default: throw Misuse("\"\(name)\" is no command; help tells what is")
        }
        let takesNumber = ["cut", "stall", "release"].contains(name)
        let takesDirection = ["stall", "block"].contains(name)
        guard number == nil || takesNumber, direction == nil || takesDirection,
            dials == nil || name == "block"
        else { throw Misuse("\(name) takes no such word; help tells what it takes") }
        return command
    }

    static let guide = [
        ("cut [N]", "breaks connection N, or all"),
        ("stall [out|in] [N]", "holds bytes back, to the target, from it, or both"),
        ("release [N]", "lets them go again"),
        ("block [out|in] [refuse]", "lets bytes vanish; new connections hang or are refused"),
        ("unblock", "takes that back; what has lost bytes stays mute"),
        ("faults [FAULTS|none]", "says or changes what happens by itself"),
        ("status", "the connections, and what has passed"),
        ("help", "this"),
        ("quit", "ends it, as Ctrl-C does"),
    ]
}
