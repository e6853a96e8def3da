import Distributed
import Nigh
import NighActors

@Resolvable protocol Greeter: DistributedActor
where ActorSystem == NighActors.ActorSystem {
    distributed func greet(_ name: String) -> String
}

distributed actor Polite: Greeter {
    typealias ActorSystem = NighActors.ActorSystem
    distributed func greet(_ name: String) -> String { "Hello, \(name)" }
}

try await withSession(service: "greetings", endsOnInterrupt: true) { session in
    session.connectsAutomatically = true
    let actors = try ActorSystem(session)
    try actors.publish(
        Polite(actorSystem: actors), as: "greeter", through: $Greeter.self)
    for await greeters in actors.listing(of: $Greeter.self) {
        for greeter in greeters {
            print(try await greeter.actor.greet(greeter.peer.name))
        }
    }
}
