extension IdentityUse: SessionLayer {
    /// Ends the use. Another session may have the identity's own key.
    public func sessionDidClose() { end() }
}
