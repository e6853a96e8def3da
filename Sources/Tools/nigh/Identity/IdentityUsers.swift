import JSONText
import NighCore
import NighSystem

/// The programs of this user that use an identity now.
struct IdentityUsers {
    private let places: [IdentityPlace]
    /// Whether a program of an earlier version uses the identity. It says neither which one it is nor for which
    /// service.
    let hasEarlierVersion: Bool

    /// Looks for the programs that use the identity in `file`.
    init(of identity: PeerID, in file: IdentityFile) {
        places = IdentityPlace.all(of: identity)
        hasEarlierVersion = file.isTakenWhole
    }

    var isEmpty: Bool { places.isEmpty && !hasEarlierVersion }

    /// One text for each program.
    var lines: [String] {
        places.map { place in
            let command = place.command.map { "`\($0)`" } ?? "a program"
            let process = place.process.map { "process \($0), " } ?? ""
            return
                "\(command) (\(process)service \(place.service)\(place.isFirst ? ", with the identity's own key" : ""))"
        } + (hasEarlierVersion ? ["a program of an earlier version of Nigh"] : [])
    }

    var json: JSON {
        .list(
            places.map { place in
                [
                    "service": .text(place.service.description), "process": JSON(place.process.map(Int.init)),
                    "command": JSON(place.command), "own_key": .bool(place.isFirst),
                ]
            })
    }
}
