import Testing

@testable import PosternClient
