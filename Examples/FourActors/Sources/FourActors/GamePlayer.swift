import Distributed
import NighActors

/// A player, as the table sees it.
@Resolvable public protocol GamePlayer: DistributedActor where ActorSystem == NighActors.ActorSystem {
    /// The player is to drop a disc.
    distributed func takeTurn(_ position: Position)
    /// The game is over.
    distributed func endGame(_ position: Position)
}
