//! Known faces in a Pinecone index.
