import NighLoop

// A house with a doorkeeper. `Doorkeeper TRANSPORTS NAME…` lets in those whose names are given, and tells all others
// that they are not expected; the doorkeeper turns away those who insist. It ends with its input.

let arguments = CommandLine.arguments.dropFirst()
let friends = Set(arguments.dropFirst())
let doorkeeper = Doorkeeper(limit: 3)
do {
    var configuration = SessionConfiguration(
        service: "nigh", name: DisplayName(fitting: "House"), role: .server)
    configuration.layers = [doorkeeper]
    let loop = try UVEventLoop.make()
    let session = Session(
        configuration, identity: .ephemeral(),
        transports: try TransportRegistry.standard.makeAll(arguments.first ?? "tcp"), loop: loop)
    session.start()
    Task.detached {
        while readLine() != nil {}
        await session.close()
    }
    for await event in session.events {
        switch event {
        case .listening(_, let addresses) where !addresses.isEmpty: print("open at \(addresses[0])")
        case .invited(let invitation) where friends.contains(invitation.peer.name): invitation.accept()
        case .invited(let invitation):
            print("\(invitation.peer.name) knocks")
            invitation.decline(because: "you are not expected")
        case .stateChanged(let peer, _, _) where peer.state == .connected: print("\(peer.name) is in")
        default: break
        }
    }
    loop.shutdown()
    print("\(doorkeeper.declined) were turned away")
} catch {
    print(error)
}
