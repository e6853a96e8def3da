import Distributed
import NighActors

/// A player that passes on the calls of its table: the positions in which it is to move, and the last one.
package distributed actor Player: GamePlayer {
    package typealias ActorSystem = NighActors.ActorSystem

    private let positions: AsyncStream<Position>.Continuation

    /// Makes a player that writes to `positions`.
    package init(actorSystem: ActorSystem, positions: AsyncStream<Position>.Continuation) {
        self.actorSystem = actorSystem
        self.positions = positions
    }

    package distributed func takeTurn(_ position: Position) { positions.yield(position) }

    package distributed func endGame(_ position: Position) {
        positions.yield(position)
        positions.finish()
    }
}
