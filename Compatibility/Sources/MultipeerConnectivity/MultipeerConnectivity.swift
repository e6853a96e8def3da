// The module of Apple's name, for Linux. The interface for programs is in Interface/, and the implementation in the
// other folders.

@_exported import Foundation
@_exported import MultipeerConnectivity
