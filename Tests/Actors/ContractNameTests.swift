import Distributed
import Nigh
import NighActors
import Testing

@Resolvable protocol CardTable: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func welcome(_ player: $CardPlayer) async throws -> String
}

@Resolvable protocol CardPlayer: DistributedActor where ActorSystem == NighActors.ActorSystem {
    distributed func name() -> String
}

distributed actor Croupier: CardTable {
    distributed func welcome(_ player: $CardPlayer) async throws -> String {
        "Welcome, \(try await player.name())"
    }
}

distributed actor Gambler: CardPlayer {
    distributed func name() -> String { "Lynx" }
}

@Suite("Contracts") struct ContractNameTests {
    @Test("may have a word in common with the types of their methods")
    func sharedWord() throws {
        let welcome = try Meeting().run { side in
            try side.actors.publish(
                Croupier(actorSystem: side.actors), as: "table", through: $CardTable.self)
        } guest: { side, peer in
            let gambler = Gambler(actorSystem: side.actors)
            let table = try side.actors.actor($CardTable.self, named: "table", on: peer)
            let welcome = try await table.welcome(side.actors.share(gambler, through: $CardPlayer.self))
            withExtendedLifetime(gambler) {}
            return welcome
        }
        #expect(welcome == "Welcome, Lynx")
    }
}
