import NighCore
import NighGroups

extension GroupRecord {
    /// The content of a record, for a line of `nigh trace`.
    var summary: String {
        switch self {
        case .join(let number, let name, _): "join \"\(name)\" as \(number)"
        case .leave(let number): "leave \(number)"
        case .refuse(let number, let reason): "refuse \(number): \(reason)"
        case .message(let number): "message to \(number)"
        }
    }

    /// The name of a record in JSON.
    var step: String {
        switch self {
        case .join: "join"
        case .leave: "leave"
        case .refuse: "refuse"
        case .message: "message"
        }
    }
}
