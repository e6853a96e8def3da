import Nigh

// A house with a doorkeeper. `Doorkeeper TRANSPORTS NAME…` lets in those whose names are given, and tells all others
// that they are not expected; the doorkeeper turns away those who insist. It ends with its input.

let arguments = CommandLine.arguments.dropFirst()
let friends = Set(arguments.dropFirst())
let doorkeeper = Doorkeeper(limit: 3)
do {
    try await withSession(
        service: "nigh", name: "House", transports: arguments.first ?? "tcp", endsOnInterrupt: true
    ) { settings in
        settings.browses = false
        settings.identity = .temporary
        settings.layers = [doorkeeper]
    } _: { session in
        let end = Task {
            for await _ in StandardInput.lines {}
            await session.close()
        }
        for await event in session.events {
            switch event {
            case .listening(_, let addresses) where !addresses.isEmpty: print("open at \(addresses[0])")
            case .invited(let invitation) where friends.contains(invitation.peer.name): invitation.accept()
            case .invited(let invitation):
                print("\(invitation.peer.name) knocks")
                invitation.decline(because: "you are not expected")
            case .connected(let peer): print("\(peer.name) is in")
            default: break
            }
        }
        end.cancel()
    }
    print("\(doorkeeper.declined) were turned away")
} catch {
    print(error)
}
