extension Invitation {
    /// Accepts the invitation. Does nothing if it has ended meanwhile: the session has then reported that.
    public func accept() {
        peer.handle.session.onLoop { driver in
            driver.inTurn { driver.machine.accept(self, now: driver.loop.now) }
        }
    }

    /// Declines the invitation.
    ///
    /// - Parameters:
    ///   - reason: a sentence for the person on the other side.
    ///   - retryAfter: the time after which the peer may ask again; zero to not say.
    public func decline(because reason: String = "", retryAfter: Duration = .zero) {
        peer.handle.session.onLoop { driver in
            driver.inTurn { driver.machine.decline(self, reason: reason, retryAfter: retryAfter) }
        }
    }
}
