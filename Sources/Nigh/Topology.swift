/// The way in which the sessions of a service are connected to each other.
public enum Topology: Sendable {
    /// Two sessions are connected if one has invited the other, and that one has accepted.
    case pairs
    /// A mesh: a session that is connected to one session of the mesh becomes connected to all. The sessions introduce
    /// each other, so it is enough that a newcomer finds one of them. Only the program of that session is asked about
    /// the newcomer.
    case mesh
}
